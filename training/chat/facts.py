"""Plain facts for generate_dialogues.py. Everything here was written for this project (no outside source)."""

# article+noun = class = definition
DEFS = """
an apple=fruit=a round fruit with red, green or yellow skin and white flesh
a banana=fruit=a long yellow fruit with a soft inside and a thick skin
an orange=fruit=a round, juicy fruit with a thick orange skin
a lemon=fruit=a sour yellow fruit that is often used in drinks and cooking
a lime=fruit=a small, sour green fruit that is a bit like a lemon
a grape=fruit=a small round fruit that grows in bunches and is used to make wine
a strawberry=fruit=a small, sweet red fruit with tiny seeds on the outside
a cherry=fruit=a small round red fruit with a stone inside
a peach=fruit=a soft, sweet fruit with fuzzy skin and a large stone
a pear=fruit=a sweet fruit that is round at the bottom and narrow at the top
a plum=fruit=a small purple or red fruit with a stone inside
a melon=fruit=a large, juicy fruit with a hard skin and many seeds
a pineapple=fruit=a large tropical fruit with rough skin and sweet yellow flesh
a mango=fruit=a sweet tropical fruit with orange flesh and a flat stone
a coconut=fruit=a large hard fruit from a palm tree, with white flesh and sweet water inside
a carrot=vegetable=a long orange root that people eat as a vegetable
a potato=vegetable=a vegetable that grows under the ground and can be boiled, baked or fried
an onion=vegetable=a round vegetable with many layers and a strong smell
a tomato=vegetable=a soft red fruit that is used as a vegetable in salads and sauces
a cucumber=vegetable=a long green vegetable that is often eaten raw in salads
a pea=vegetable=a small round green seed that is eaten as a vegetable
a bean=vegetable=a seed that grows in a pod and is eaten as a vegetable
a cabbage=vegetable=a round vegetable with many thick green or purple leaves
a pumpkin=vegetable=a large round orange vegetable with many seeds inside
a mushroom=vegetable=a soft fungus with a cap, and some kinds are good to eat
garlic=vegetable=a plant with a strong taste that is used to flavour food
spinach=vegetable=a vegetable with soft dark green leaves
corn=vegetable=a tall plant with yellow seeds that people and animals eat
rice=food=a small white or brown grain that many people eat every day
bread=food=a food made from flour, water and yeast that is baked in an oven
butter=food=a soft yellow food made from cream
cheese=food=a food made from milk
an egg=food=an oval object laid by a bird, and hen eggs are a common food
soup=food=a liquid food made by boiling vegetables, meat or fish in water
a sandwich=food=two pieces of bread with a filling between them
a cake=food=a sweet food made from flour, eggs, sugar and butter
a cookie=food=a small, flat, sweet cake
pizza=food=a flat round bread baked with tomato, cheese and other toppings
pasta=food=a food made from flour and water, shaped into strings, tubes or other forms
salad=food=a dish of raw vegetables, often with a dressing
honey=food=a sweet, sticky food made by bees
sugar=food=a sweet substance that is used in food and drinks
salt=food=a white mineral that makes food taste stronger
pepper=food=a spice that gives food a hot taste
chocolate=food=a sweet brown food made from cocoa beans
jam=food=a sweet food made by boiling fruit with sugar
flour=food=a fine powder made from grain and used to make bread and cakes
water=drink=a clear liquid that all living things need
milk=drink=a white liquid that female mammals make to feed their young
tea=drink=a hot drink made by putting dried leaves in boiling water
coffee=drink=a dark hot drink made from roasted beans
juice=drink=the liquid that comes from fruit or vegetables
a dog=animal=a friendly animal that many people keep as a pet
a cat=animal=a small furry animal that people keep as a pet and that likes to hunt mice
a horse=animal=a large strong animal that people can ride
a cow=animal=a large farm animal that gives milk
a pig=animal=a farm animal with a flat nose and a curly tail
a sheep=animal=a farm animal with thick wool
a goat=animal=a farm animal with horns and a short beard
a rabbit=animal=a small animal with long ears that can jump and dig
a mouse=animal=a very small animal with a long tail and round ears
a lion=animal=a large wild cat that lives in Africa
a tiger=animal=a large wild cat with orange fur and black stripes
an elephant=animal=a very large grey animal with a long trunk and big ears
a giraffe=animal=a tall African animal with a very long neck
a monkey=animal=a clever animal with a long tail that lives in trees
a bear=animal=a large, heavy animal with thick fur
a wolf=animal=a wild animal that looks like a large dog and lives in a pack
a fox=animal=a wild animal with red fur and a bushy tail
a deer=animal=a wild animal that eats grass and can run fast, and the males have antlers
a kangaroo=animal=an Australian animal that hops and carries its baby in a pouch
a koala=animal=a grey Australian animal that lives in trees and eats leaves
a camel=animal=a desert animal with one or two humps on its back
a zebra=animal=an African animal like a horse with black and white stripes
a hippo=animal=a very large African animal that spends much of its time in water
a squirrel=animal=a small animal with a bushy tail that eats nuts
a hedgehog=animal=a small animal covered in sharp spines
a bat=animal=a small animal with wings that flies at night
a whale=animal=a huge animal that lives in the sea and breathes air
a dolphin=animal=a clever sea animal that breathes air and likes to jump
a seal=animal=a sea animal with smooth fur that eats fish
a shark=fish=a large fish with many sharp teeth
a salmon=fish=a large fish with pink flesh that swims up rivers to lay its eggs
a fish=animal=an animal that lives in water and breathes with gills
a frog=animal=a small animal with smooth skin that can jump and lives near water
a snake=reptile=a long reptile with no legs
a lizard=reptile=a small reptile with four legs and a long tail
a turtle=reptile=a slow reptile with a hard shell
a crocodile=reptile=a large reptile with strong jaws that lives in rivers
a bird=animal=an animal with feathers, wings and a beak
a chicken=bird=a farm bird that is kept for its eggs and meat
a duck=bird=a bird that swims on water and says quack
an owl=bird=a bird with large eyes that hunts at night
an eagle=bird=a large bird with strong claws and very good eyes
a penguin=bird=a black and white bird that cannot fly but swims very well
a parrot=bird=a bright tropical bird that can copy sounds
a swan=bird=a large white bird with a long neck that lives on water
an insect=animal=a small animal with six legs
a bee=insect=an insect that makes honey and helps flowers grow
an ant=insect=a tiny insect that lives in large groups
a butterfly=insect=an insect with large, colourful wings
a spider=animal=a small animal with eight legs that often makes a web
a snail=animal=a small slow animal with a shell on its back
a worm=animal=a long thin animal with no legs that lives in the soil
a crab=animal=a sea animal with a hard shell and two claws
an octopus=animal=a sea animal with eight arms
a dinosaur=animal=a kind of reptile that lived on Earth millions of years ago
a tree=plant=a tall plant with a trunk, branches and leaves
a flower=plant=the colourful part of a plant that makes seeds
grass=plant=a short green plant that covers fields and gardens
a rose=flower=a flower that smells sweet and has thorns on its stem
a tulip=flower=a bright spring flower shaped like a cup
a daisy=flower=a small flower with white petals and a yellow centre
a cactus=plant=a desert plant with thick stems and sharp spines
a leaf=plant part=a flat, usually green part of a plant that makes food from sunlight
a root=plant part=the part of a plant that grows under the ground and takes in water
a seed=plant part=a small thing from which a new plant grows
a forest=place=a large area covered with trees
a garden=place=a piece of land where people grow flowers or vegetables
a farm=place=a place where people grow crops and keep animals
a field=place=an open area of land, often covered with grass or crops
a mountain=place=a very high piece of land with steep sides
a hill=place=a piece of land that is higher than the land around it
a valley=place=the low land between hills or mountains
a river=place=a long, wide stream of water that flows to the sea or a lake
a lake=place=a large area of water with land all around it
an ocean=place=a very large area of salt water
an island=place=a piece of land with water all around it
a beach=place=an area of sand or small stones beside the sea
a desert=place=a dry place with very little rain and few plants
a volcano=place=a mountain that can throw out hot rock, ash and gas
a cave=place=a large hole in a hill or under the ground
a waterfall=place=a place where a river falls over a steep edge
a city=place=a large place where many people live and work
a town=place=a place with houses and shops that is smaller than a city
a village=place=a very small group of houses in the country
a country=place=an area of land with its own government
a street=place=a road in a town or city with buildings beside it
a bridge=structure=a structure that lets people cross over a river, road or valley
a tunnel=structure=a long passage under the ground or through a hill
a tower=structure=a tall, narrow building
a castle=building=a large strong building with thick walls, built long ago to keep people safe
a house=building=a building where people live
a school=building=a place where children go to learn
a hospital=building=a place where sick or hurt people are cared for
a library=building=a place where people can read and borrow books
a museum=building=a building where people can see art, old things or things from science
a shop=building=a place where people buy things
a bakery=building=a place where bread and cakes are made or sold
a restaurant=building=a place where people pay to eat a meal
a hotel=building=a building where travellers pay to stay the night
an airport=place=a place where planes take off and land
a station=place=a place where trains or buses stop so that people can get on and off
a church=building=a building where Christians go to pray
a theatre=building=a building where people watch plays and shows
a cinema=building=a place where people watch films on a big screen
a factory=building=a building where things are made with machines
a park=place=an open green area in a town where people walk and play
a zoo=place=a place where people can see many kinds of animals
a market=place=a place where people buy and sell food and other things
a bank=building=a business that keeps and lends money
a kitchen=room=a room where people cook food
a bedroom=room=a room where people sleep
a bathroom=room=a room where people wash
a garage=building=a building where a car is kept
a door=part of a house=a flat piece of wood or metal that you open to go into a room or building
a window=part of a house=an opening in a wall, covered with glass, that lets in light
a wall=part of a house=a flat upright side of a room or building
a roof=part of a house=the cover on top of a building
a floor=part of a house=the flat part of a room that you walk on
stairs=part of a house=a set of steps that go from one level to another
a table=furniture=a piece of furniture with a flat top and legs
a chair=furniture=a seat with a back and legs, made for one person
a bed=furniture=a piece of furniture for sleeping on
a sofa=furniture=a long soft seat for two or more people
a desk=furniture=a table where you sit to write or work
a shelf=furniture=a flat board on a wall that holds books and other things
a lamp=object=a thing that gives light
a mirror=object=a piece of glass in which you can see yourself
a clock=object=a machine that shows the time
a watch=object=a small clock that you wear on your wrist
a candle=object=a stick of wax with a string inside that burns to give light
a pillow=object=a soft bag that you rest your head on in bed
a blanket=object=a warm cover for a bed
a carpet=object=a thick cloth cover for a floor
a curtain=object=a piece of cloth that hangs in front of a window
a key=object=a small piece of metal that opens a lock
a lock=object=a thing that keeps a door or box closed
a box=object=a container with flat sides, often made of card or wood
a bag=object=a soft container for carrying things
a basket=object=a container made of thin strips of wood or other material
a bottle=object=a tall container with a narrow top for liquids
a cup=object=a small container with a handle that you drink from
a glass=object=a container made of glass that you drink from
a plate=object=a flat dish that you put food on
a bowl=object=a deep round dish for food such as soup
a spoon=tool=a tool with a small bowl at one end, used for eating soup and stirring
a fork=tool=a tool with points at one end, used for eating
a knife=tool=a tool with a sharp blade, used for cutting
a pan=tool=a metal container used for cooking
an oven=machine=a machine with a door that you use to bake food
a fridge=machine=a machine that keeps food cold
a kettle=machine=a container for boiling water
a hammer=tool=a tool with a heavy head, used for hitting nails
a saw=tool=a tool with a blade with sharp teeth, used for cutting wood
a nail=object=a thin pointed piece of metal that holds pieces of wood together
a screw=object=a pointed piece of metal that you turn to join two things
a ladder=tool=two long poles joined by steps, used for climbing
a rope=object=a thick strong string
a needle=tool=a thin pointed piece of metal used for sewing
scissors=tool=a tool with two blades, used for cutting paper or cloth
a brush=tool=a tool with hairs on it, used for cleaning, painting or tidying hair
a broom=tool=a brush with a long handle, used for sweeping floors
a shovel=tool=a tool with a wide flat blade, used for digging
an umbrella=object=a cover on a stick that you hold over your head in the rain
a book=object=a set of pages with writing, joined together inside a cover
a newspaper=object=sheets of paper with the news that come out each day or week
a letter=object=a written message, or one of the signs of the alphabet
a pen=tool=a thing for writing with ink
a pencil=tool=a thin stick of wood with a grey or coloured centre, used for writing or drawing
paper=material=thin sheets made from wood that people write on
a map=object=a drawing that shows where places are
a picture=object=a painting, drawing or photo
a photo=object=a picture made with a camera
a camera=machine=a machine that takes photos
a phone=machine=a machine that lets you talk to people who are far away
a computer=machine=a machine that stores information and follows instructions
a keyboard=object=a set of keys that you press to type
a screen=object=the flat part of a computer, phone or television that shows pictures
a robot=machine=a machine that can do jobs by itself
a television=machine=a machine that shows moving pictures with sound
a radio=machine=a machine that lets you listen to programmes and music
a battery=object=a thing that stores electricity
a machine=object=a thing with moving parts that does a job
an engine=machine=a machine that makes something move
a car=vehicle=a vehicle with four wheels and an engine that carries a few people
a bus=vehicle=a large vehicle that carries many people along the road
a truck=vehicle=a large vehicle that carries heavy things
a train=vehicle=a long vehicle that runs on rails
a bicycle=vehicle=a vehicle with two wheels that you move by pushing the pedals
a boat=vehicle=a small vehicle that travels on water
a ship=vehicle=a large boat that travels across the sea
a plane=vehicle=a vehicle with wings that flies through the air
a helicopter=vehicle=a flying vehicle with large blades that spin on top
a rocket=vehicle=a vehicle that travels into space
a wheel=object=a round thing that turns and helps vehicles move
a road=structure=a long hard path for cars and other vehicles
a hat=clothing=a thing that you wear on your head
a coat=clothing=a warm piece of clothing that you wear outside
a shirt=clothing=a piece of clothing for the top of the body
a dress=clothing=a piece of clothing that covers the body and the legs
a skirt=clothing=a piece of clothing that hangs from the waist
a shoe=clothing=a thing that you wear on your foot
a sock=clothing=a soft piece of clothing that you wear on your foot inside a shoe
a glove=clothing=a piece of clothing that covers your hand
a scarf=clothing=a long piece of cloth that you wear around your neck
a belt=clothing=a band that you wear around your waist
a button=object=a small round thing that closes a shirt or coat
a pocket=part of clothing=a small bag in clothing for carrying things
a ring=object=a round band that you wear on a finger
money=thing=the coins and paper that people use to buy things
a coin=object=a small round piece of metal used as money
gold=material=a yellow metal that is worth a lot of money
silver=material=a shiny grey metal used for rings and coins
iron=material=a strong, heavy metal
metal=material=a hard shiny material such as iron or gold
wood=material=the hard material that trees are made of
stone=material=the hard material that rocks are made of
sand=material=very small grains of rock found on beaches and in deserts
plastic=material=a light, strong material made in factories
cotton=material=a soft cloth made from the white hairs of a plant
wool=material=the soft thick hair of sheep, used to make warm clothes
silk=material=a fine, smooth cloth made from threads spun by silkworms
leather=material=a strong material made from animal skin
a brick=object=a block of baked clay used for building
the sun=star=the star at the centre of our solar system, and it gives us light and heat
the moon=space object=a large ball of rock that travels around the Earth
the Earth=planet=the planet that we live on
a star=space object=a very hot ball of gas in space that gives out light
a planet=space object=a large round object that travels around a star
the sky=part of nature=the space above the Earth where we see the sun, clouds and stars
a cloud=weather=a white or grey mass of tiny water drops in the sky
rain=weather=water that falls in drops from the clouds
snow=weather=soft white flakes of ice that fall from the sky when it is cold
ice=material=water that has frozen hard
wind=weather=moving air
a storm=weather=very bad weather with strong wind and rain
thunder=weather=the loud noise that follows lightning
lightning=weather=a bright flash of electricity in the sky
fog=weather=thick cloud close to the ground that makes it hard to see
a rainbow=weather=a curve of colours in the sky that you see when the sun shines through rain
fire=part of nature=the light, heat and flames made by something that is burning
smoke=part of nature=the grey or black gas that comes from a fire
air=part of nature=the mixture of gases around us that we breathe
light=part of nature=the energy that lets us see things
a shadow=part of nature=the dark shape made when something blocks the light
electricity=energy=a kind of energy that powers lamps and machines
spring=season=the season after winter, when plants begin to grow
summer=season=the warmest season of the year
autumn=season=the season after summer, when many leaves fall
winter=season=the coldest season of the year
morning=time of day=the first part of the day, before noon
noon=time of day=twelve o'clock in the middle of the day
evening=time of day=the part of the day between the afternoon and the night
night=time of day=the dark part of the day when most people sleep
a minute=unit of time=a period of sixty seconds
an hour=unit of time=a period of sixty minutes
a day=unit of time=a period of twenty-four hours
a week=unit of time=a period of seven days
a month=unit of time=one of the twelve parts of a year
a year=unit of time=a period of twelve months
a century=unit of time=a period of one hundred years
a birthday=day=the day each year when you remember the day you were born
a holiday=time=a time when you do not have to work or go to school
a calendar=object=a list of the days, weeks and months of a year
a family=group=a group of people who are related, such as parents and children
a mother=person=a woman who has a child
a father=person=a man who has a child
a brother=person=a boy or man who has the same parents as you
a sister=person=a girl or woman who has the same parents as you
a grandmother=person=the mother of your mother or father
a grandfather=person=the father of your mother or father
an uncle=person=the brother of your mother or father
an aunt=person=the sister of your mother or father
a cousin=person=a child of your aunt or uncle
a baby=person=a very young child
a child=person=a young person
a friend=person=a person you like and know well
a neighbour=person=a person who lives near you
a teacher=job=a person who helps others learn, usually in a school
a student=person=a person who is learning at a school or university
a doctor=job=a person who helps sick people get well
a nurse=job=a person who cares for sick people
a dentist=job=a person who takes care of teeth
a farmer=job=a person who grows crops or keeps animals
a cook=job=a person who makes food
a baker=job=a person who makes bread and cakes
a driver=job=a person who drives a car, bus or truck
a pilot=job=a person who flies a plane
a sailor=job=a person who works on a boat or ship
a soldier=job=a person who serves in an army
a police officer=job=a person whose job is to keep people safe and make sure the law is kept
a firefighter=job=a person whose job is to put out fires
a builder=job=a person who builds houses and other things
a carpenter=job=a person who makes things from wood
a painter=job=a person who paints pictures or walls
an artist=job=a person who makes art
a singer=job=a person who sings
a musician=job=a person who plays music
an actor=job=a person who plays a part in a film or play
a writer=job=a person who writes books or stories
a scientist=job=a person who studies how the world works
an engineer=job=a person who designs machines, roads or buildings
an astronaut=job=a person who travels into space
a lawyer=job=a person who helps others with the law
a judge=job=a person who decides cases in a court
a king=person=a man who rules a country
a queen=person=a woman who rules a country, or the wife of a king
a president=person=the leader of a country that is a republic
the head=body part=the top part of the body, where the face and the brain are
the brain=body part=the part of the body inside the head that thinks
the heart=body part=the part of the body that pumps blood
an eye=body part=the part of the body that you see with
an ear=body part=the part of the body that you hear with
a nose=body part=the part of the face that you smell and breathe with
a mouth=body part=the part of the face that you eat and speak with
a tooth=body part=one of the hard white things in the mouth that you bite with
a tongue=body part=the soft part in the mouth that helps you taste and speak
a hand=body part=the part at the end of the arm that has fingers
a finger=body part=one of the five long parts at the end of the hand
a thumb=body part=the short thick finger at the side of the hand
an arm=body part=the part of the body between the shoulder and the hand
a leg=body part=one of the long parts of the body that you walk with
a foot=body part=the part at the end of the leg that you stand on
a knee=body part=the part in the middle of the leg where it bends
a shoulder=body part=the part of the body where the arm joins it
the stomach=body part=the part of the body where food goes after you eat it
skin=body part=the outer covering of the body
a bone=body part=one of the hard parts inside the body
blood=part of the body=the red liquid that the heart pumps around the body
a muscle=body part=a part of the body that pulls on bones to make them move
the lungs=body part=the two parts of the body that you breathe with
music=art=sounds put together in a way that people enjoy
a song=art=a piece of music with words
a dance=art=a way of moving the body to music
a story=art=a description of events that may be real or imagined
a poem=art=a short piece of writing in lines, which often rhyme
a film=art=a story told with moving pictures
a painting=art=a picture made with paint
a piano=instrument=a large instrument with black and white keys
a guitar=instrument=an instrument with strings that you play with your fingers
a violin=instrument=a small wooden instrument with four strings, played with a bow
a drum=instrument=a round instrument that you hit with your hands or with sticks
a flute=instrument=a thin instrument that you play by blowing
a trumpet=instrument=a bright metal instrument that you play by blowing
a game=activity=something you play for fun, usually with rules
football=sport=a game in which two teams try to kick a ball into a goal
tennis=sport=a game in which players hit a ball over a net with rackets
basketball=sport=a game in which two teams try to throw a ball through a high ring
cricket=sport=a game played with a bat and a ball by two teams of eleven players
swimming=sport=the sport of moving through water with the arms and legs
chess=game=a board game for two players with kings, queens and other pieces
a ball=toy=a round thing that is used in many games
a doll=toy=a toy that looks like a person
a kite=toy=a toy that flies in the wind at the end of a string
a puzzle=game=a game or problem that you solve by thinking
a toy=object=a thing that children play with
a gift=object=a thing that you give to someone
a party=event=a time when people come together to eat, talk and have fun
a wedding=event=the event when two people get married
a dream=thought=the pictures and thoughts that come to you when you sleep
an idea=thought=a thought or plan in your mind
a question=words=a sentence that asks for information
an answer=words=what you say or write when someone asks a question
a word=language=a group of letters or sounds that has a meaning
a sentence=language=a group of words that makes sense by itself
a noun=language=a word that names a person, place or thing
a verb=language=a word for an action or a state, such as run or be
an adjective=language=a word that describes a noun, such as big or red
a language=language=the words that people use to speak and write
a dictionary=book=a book that tells you what words mean
the alphabet=language=the set of letters used to write a language
a number=thing=a word or sign that tells you how many
a circle=shape=a perfectly round shape
a square=shape=a shape with four equal sides and four right angles
a triangle=shape=a shape with three sides
a rectangle=shape=a shape with four straight sides and four right angles
a line=shape=a long thin mark
a cube=shape=a solid shape with six square sides
a colour=thing=what you see when light comes off a thing, such as red or blue
science=subject=the study of how the world works
history=subject=the study of what happened in the past
mathematics=subject=the study of numbers, amounts and shapes
geography=subject=the study of the Earth, its places and its people
biology=subject=the science of living things
chemistry=subject=the science of what things are made of and how they change
physics=subject=the science of matter, forces and energy
gravity=force=the force that pulls things towards the ground
energy=thing=the power to do work or make things move
oxygen=gas=a gas in the air that people and animals need to breathe
an atom=thing=the smallest part of a chemical element
a cell=thing=the smallest living part of a plant or animal
a magnet=object=a piece of metal that pulls iron towards it
the internet=technology=a network that joins computers all over the world
a website=technology=a set of pages on the internet
an email=technology=a message sent from one computer or phone to another
a password=technology=a secret word that lets you use a computer or an account
software=technology=the programs that tell a computer what to do
a program=technology=a set of instructions that a computer follows
a browser=technology=a program that you use to look at websites
a server=technology=a computer or program that answers requests from other computers
a language model=technology=a program that has learned from text and predicts the next word
a token=technology=a small piece of text, such as a word or part of a word, that a language model reads
an API=technology=a set of rules that lets one program talk to another
happiness=feeling=the feeling of being happy
fear=feeling=the feeling you have when you think something bad may happen
anger=feeling=the strong feeling you have when something seems wrong or unfair
love=feeling=a strong feeling of caring about someone or something
hope=feeling=the feeling that something good can happen
courage=quality=the ability to do something even when you are afraid
kindness=quality=the quality of being friendly and helpful to others
honesty=quality=the quality of telling the truth
patience=quality=the ability to wait calmly
a habit=action=something that you do often, almost without thinking
a rule=idea=something that tells you what you may or may not do
a law=idea=a rule that everyone in a country must follow
peace=idea=a time without war or fighting
a war=event=a long fight between countries or groups
work=activity=what people do to earn money or to get something done
sleep=activity=the rest that the body and mind take at night
"""

CAPITALS = """
France|Paris|Europe
Germany|Berlin|Europe
Italy|Rome|Europe
Spain|Madrid|Europe
Portugal|Lisbon|Europe
the United Kingdom|London|Europe
England|London|Europe
Scotland|Edinburgh|Europe
Wales|Cardiff|Europe
Ireland|Dublin|Europe
Belgium|Brussels|Europe
the Netherlands|Amsterdam|Europe
Austria|Vienna|Europe
Switzerland|Bern|Europe
Denmark|Copenhagen|Europe
Norway|Oslo|Europe
Sweden|Stockholm|Europe
Finland|Helsinki|Europe
Iceland|Reykjavik|Europe
Poland|Warsaw|Europe
the Czech Republic|Prague|Europe
Slovakia|Bratislava|Europe
Hungary|Budapest|Europe
Romania|Bucharest|Europe
Bulgaria|Sofia|Europe
Greece|Athens|Europe
Croatia|Zagreb|Europe
Serbia|Belgrade|Europe
Slovenia|Ljubljana|Europe
Ukraine|Kyiv|Europe
Russia|Moscow|Europe
Estonia|Tallinn|Europe
Latvia|Riga|Europe
Lithuania|Vilnius|Europe
Malta|Valletta|Europe
Turkey|Ankara|Asia
Cyprus|Nicosia|Asia
China|Beijing|Asia
Japan|Tokyo|Asia
South Korea|Seoul|Asia
North Korea|Pyongyang|Asia
India|New Delhi|Asia
Pakistan|Islamabad|Asia
Bangladesh|Dhaka|Asia
Nepal|Kathmandu|Asia
Thailand|Bangkok|Asia
Vietnam|Hanoi|Asia
Malaysia|Kuala Lumpur|Asia
Indonesia|Jakarta|Asia
the Philippines|Manila|Asia
Singapore|Singapore|Asia
Mongolia|Ulaanbaatar|Asia
Iran|Tehran|Asia
Iraq|Baghdad|Asia
Saudi Arabia|Riyadh|Asia
Jordan|Amman|Asia
Lebanon|Beirut|Asia
Qatar|Doha|Asia
the United Arab Emirates|Abu Dhabi|Asia
Egypt|Cairo|Africa
Morocco|Rabat|Africa
Algeria|Algiers|Africa
Tunisia|Tunis|Africa
Nigeria|Abuja|Africa
Ghana|Accra|Africa
Kenya|Nairobi|Africa
Ethiopia|Addis Ababa|Africa
Uganda|Kampala|Africa
Rwanda|Kigali|Africa
Senegal|Dakar|Africa
Zambia|Lusaka|Africa
Zimbabwe|Harare|Africa
Angola|Luanda|Africa
Canada|Ottawa|North America
the United States|Washington, D.C.|North America
Mexico|Mexico City|North America
Cuba|Havana|North America
Jamaica|Kingston|North America
Costa Rica|San Jose|North America
Panama|Panama City|North America
Brazil|Brasilia|South America
Argentina|Buenos Aires|South America
Chile|Santiago|South America
Peru|Lima|South America
Colombia|Bogota|South America
Venezuela|Caracas|South America
Ecuador|Quito|South America
Uruguay|Montevideo|South America
Australia|Canberra|Oceania
New Zealand|Wellington|Oceania
Fiji|Suva|Oceania
"""

OPPOSITES = """hot cold|big small|tall short|up down|left right|in out|day night|black white|fast slow|happy sad|old young|new old|good bad|hard soft|light dark|full empty|open closed|wet dry|clean dirty|rich poor|strong weak|early late|first last|high low|long short|wide narrow|thick thin|near far|heavy light|loud quiet|hungry full|easy difficult|right wrong|true false|yes no|on off|front back|inside outside|top bottom|before after|start finish|begin end|win lose|push pull|buy sell|give take|come go|love hate|laugh cry|awake asleep|alive dead|safe dangerous|brave afraid|kind cruel|polite rude|smooth rough|sharp blunt|sweet sour|cheap expensive|busy free|noisy quiet|north south|east west|man woman|boy girl|king queen|mother father|brother sister|friend enemy|question answer|summer winter|morning evening|always never|many few|more less|above below|over under|arrive leave|remember forget|find lose|accept refuse|ask answer|build destroy|float sink|grow shrink|rise fall|succeed fail|sick healthy|beautiful ugly|deep shallow|modern ancient|public private|simple complex|tight loose|warm cool|wild tame|wise foolish|lazy hardworking|lucky unlucky|possible impossible|legal illegal|polite impolite|patient impatient|visible invisible|honest dishonest|correct incorrect|together apart|teach learn|borrow lend|catch throw|freeze melt|hello goodbye|war peace|heaven hell|entrance exit|victory defeat|war peace|increase decrease|appear disappear|stand sit|speak listen|send receive|tie untie|lock unlock|pack unpack|break fix|save spend|day night|male female|guest host|buyer seller|past future|major minor|maximum minimum|positive negative"""

PLURALS = """child children|man men|woman women|foot feet|tooth teeth|mouse mice|goose geese|person people|ox oxen|sheep sheep|fish fish|deer deer|leaf leaves|knife knives|wife wives|life lives|wolf wolves|shelf shelves|half halves|loaf loaves|thief thieves|scarf scarves|calf calves|city cities|baby babies|lady ladies|party parties|story stories|country countries|berry berries|cherry cherries|fly flies|puppy puppies|family families|box boxes|fox foxes|bus buses|glass glasses|dress dresses|dish dishes|brush brushes|watch watches|church churches|peach peaches|match matches|beach beaches|potato potatoes|tomato tomatoes|hero heroes|piano pianos|photo photos|day days|boy boys|key keys|toy toys|monkey monkeys|cat cats|dog dogs|book books|car cars|tree trees|house houses|apple apples|bird birds|chair chairs|table tables|flower flowers|horse horses|cup cups|door doors|hat hats|lamp lamps|ship ships|star stars|river rivers|garden gardens|teacher teachers|friend friends|window windows|pencil pencils|song songs|cloud clouds|farm farms|cake cakes|egg eggs|ring rings|boat boats|shoe shoes|cow cows|pig pigs|cactus cacti|crisis crises|roof roofs|bridge bridges|orange oranges|sandwich sandwiches|bench benches|kiss kisses|class classes|lunch lunches|brother brothers|mango mangoes|echo echoes|body bodies|copy copies"""

PAST = """go went|eat ate|see saw|run ran|come came|take took|give gave|make made|have had|do did|say said|get got|know knew|think thought|find found|tell told|feel felt|leave left|bring brought|begin began|keep kept|hold held|write wrote|stand stood|hear heard|meet met|pay paid|sit sat|speak spoke|lead led|read read|grow grew|lose lost|fall fell|send sent|build built|understand understood|draw drew|break broke|spend spent|cut cut|rise rose|drive drove|buy bought|wear wore|choose chose|sing sang|swim swam|fly flew|drink drank|sleep slept|teach taught|catch caught|throw threw|forget forgot|ride rode|win won|hide hid|bite bit|blow blew|steal stole|freeze froze|dig dug|sell sold|fight fought|feed fed|shine shone|walk walked|play played|jump jumped|work worked|talk talked|look looked|help helped|cook cooked|clean cleaned|dance danced|like liked|live lived|love loved|hope hoped|smile smiled|stop stopped|plan planned|try tried|carry carried|cry cried|study studied|open opened|close closed|visit visited|call called|wait waited|ask asked|laugh laughed|paint painted|wash washed|watch watched"""

SYNONYMS = """big large|small little|happy glad|sad unhappy|fast quick|begin start|end finish|smart clever|beautiful lovely|angry cross|tired sleepy|scared afraid|rich wealthy|ill sick|loud noisy|quiet silent|easy simple|hard difficult|strange odd|correct right|wrong incorrect|nice pleasant|funny amusing|brave courageous|shout yell|talk speak|look see|gift present|home house|job work|street road|child kid|friend pal|mistake error|answer reply|choose pick|help assist|buy purchase|fix repair|close shut|throw toss|jump leap|cold chilly|hot boiling|old ancient|new modern|calm peaceful|kind caring|polite courteous|famous well known|enough sufficient|huge enormous|tiny very small|wonderful marvellous|delicious tasty|important vital|strong powerful|rock stone|story tale|picture image|journey trip|hurry rush|keep hold|like enjoy|need require|try attempt|want wish for|whole entire"""

RHYMES = """cat:hat bat mat|dog:fog log frog|sun:run fun bun|tree:bee sea free|car:star far jar|house:mouse blouse|night:light bright kite|day:play say way|ball:tall wall fall|boat:coat goat note|cake:lake snake bake|moon:spoon soon tune|king:ring sing wing|bed:red head bread|rain:train plane chain|book:look cook hook|fish:dish wish|door:floor more four|box:fox socks rocks|hand:sand land band|nose:rose toes shows|blue:shoe two new|time:lime climb rhyme|bear:chair pear hair|bell:shell well tell|pen:ten hen men|pig:big wig dig|snow:go show toe|love:dove glove above|ship:trip lip chip|green:queen bean seen|fire:tire wire higher|sky:fly high pie|heart:start art part|town:brown crown down|clock:rock sock lock|air:hair care share|song:long strong wrong|dream:cream team stream|word:bird heard third"""

# animal | sound | baby | home | eats | legs | fact
ANIMALS = """
dog|bark|puppy|a kennel or a house|meat and dog food|4|Dogs can smell much better than people can.
cat|meow|kitten|a house|meat and fish|4|Cats sleep for more than twelve hours a day.
cow|moo|calf|a farm|grass|4|A cow has a stomach with four parts.
horse|neigh|foal|a stable|grass and hay|4|Horses can sleep standing up.
pig|oink|piglet|a sty|roots, plants and scraps|4|Pigs are very clever animals.
sheep|baa|lamb|a farm|grass|4|Wool from sheep is used to make warm clothes.
goat|bleat|kid|a farm|grass and leaves|4|Goats are very good at climbing.
duck|quack|duckling|ponds and rivers|plants, seeds and insects|2|Ducks have feathers that keep out water.
chicken|cluck|chick|a coop|seeds and insects|2|A hen can lay about three hundred eggs in a year.
lion|roar|cub|the grasslands of Africa|meat|4|A group of lions is called a pride.
tiger|roar|cub|the forests of Asia|meat|4|No two tigers have the same stripes.
bear|growl|cub|forests and mountains|fish, berries and meat|4|Many bears sleep through the winter.
wolf|howl|pup|forests|meat|4|Wolves live in groups called packs.
fox|bark|cub|a den|mice, birds and berries|4|Foxes have very good hearing.
elephant|trumpet|calf|Africa and Asia|grass, leaves and fruit|4|The African elephant is the largest land animal.
giraffe|hum|calf|the grasslands of Africa|leaves|4|The giraffe is the tallest animal in the world.
zebra|bray|foal|the grasslands of Africa|grass|4|Every zebra has its own pattern of stripes.
monkey|chatter|infant|forests|fruit, leaves and insects|2|Many monkeys use their tails to hold on to branches.
kangaroo|cough|joey|Australia|grass|2|A kangaroo can jump about eight metres in one leap.
koala|grunt|joey|trees in Australia|eucalyptus leaves|4|Koalas sleep for up to twenty hours a day.
rabbit|squeak|kit|a burrow|grass and vegetables|4|The teeth of a rabbit never stop growing.
mouse|squeak|pup|a nest or a hole|seeds and grain|4|A mouse can squeeze through a very small hole.
frog|croak|tadpole|ponds and wet places|insects|4|Frogs can breathe through their skin.
snake|hiss|snakelet|grass, trees and deserts|mice and other small animals|0|Snakes smell with their tongues.
bee|buzz|larva|a hive|nectar and pollen|6|A bee visits many flowers to make a little honey.
ant|no sound that we can hear|larva|a nest in the ground|seeds, insects and sweet things|6|An ant can carry many times its own weight.
spider|no sound that we can hear|spiderling|a web or a hole|insects|8|Spiders are not insects, because they have eight legs.
butterfly|no sound that we can hear|caterpillar|gardens and fields|nectar|6|A butterfly tastes with its feet.
owl|hoot|owlet|trees and barns|mice and other small animals|2|Owls can turn their heads very far around.
eagle|scream|eaglet|high trees and cliffs|fish and small animals|2|Eagles can see small animals from very far away.
penguin|squawk|chick|the cold lands of the south|fish|2|Penguins cannot fly, but they are great swimmers.
parrot|squawk|chick|warm forests|seeds, nuts and fruit|2|Some parrots can copy human words.
whale|sing|calf|the sea|small sea animals and fish|0|The blue whale is the largest animal that has ever lived.
dolphin|click and whistle|calf|the sea|fish|0|Dolphins breathe air and must come up to the surface.
shark|no sound that we can hear|pup|the sea|fish and seals|0|Sharks lived on Earth before the dinosaurs.
camel|grunt|calf|the desert|dry plants and grass|4|Camels store fat in their humps.
turtle|hiss|hatchling|the sea, rivers and ponds|plants and small animals|4|Some turtles live for more than one hundred years.
crocodile|growl|hatchling|rivers|fish and other animals|4|Crocodiles have lived on Earth since the time of the dinosaurs.
octopus|no sound that we can hear|larva|the sea|crabs and small fish|8|An octopus has three hearts.
bat|squeak|pup|caves and old buildings|insects and fruit|2|Bats use sound to find their way in the dark.
squirrel|chatter|kit|trees|nuts and seeds|4|Squirrels hide nuts to eat in the winter.
hedgehog|snuffle|hoglet|gardens and hedges|insects and worms|4|A hedgehog rolls into a ball when it is afraid.
deer|grunt|fawn|forests and fields|grass and leaves|4|Male deer grow new antlers every year.
donkey|bray|foal|a farm|grass and hay|4|Donkeys have a very good memory.
swan|hiss|cygnet|lakes and rivers|water plants|2|Swans often stay with the same partner for life.
polar bear|growl|cub|the Arctic|seals|4|Polar bears have black skin under their white fur.
cheetah|chirp|cub|the grasslands of Africa|meat|4|The cheetah is the fastest land animal.
panda|bleat|cub|the mountains of China|bamboo|4|A panda can spend twelve hours a day eating.
seal|bark|pup|the sea and icy shores|fish|0|Seals can hold their breath for a long time.
snail|no sound that we can hear|baby snail|gardens and ponds|leaves|0|A snail carries its shell on its back.
"""

COLOURS = """the sky on a clear day=blue|grass=green|snow=white|a ripe banana=yellow|a lemon=yellow|blood=red|the night sky=black|a carrot=orange|a ripe tomato=red|milk=white|coal=black|chocolate=brown|an elephant=grey|a polar bear=white|a frog=green|the sun in a drawing=yellow|a strawberry=red|a flamingo=pink|a fire engine=red|a pea=green|the sea=blue|a pumpkin=orange|a leaf in summer=green|a ripe cherry=red|salt=white|a crow=black|gold=yellow|silver=grey|an orange=orange|a plum=purple|a lime=green|cheese=yellow|a rain cloud=grey|a cucumber=green|a lavender flower=purple|wood=brown|soil=brown|cotton=white|a ruby=red|an emerald=green|a sapphire=blue|rice=white|butter=yellow|coffee=brown|a stop sign=red|a panda=black and white|a zebra=black and white|a penguin=black and white"""
MIXES = """red blue purple|red yellow orange|blue yellow green|red white pink|black white grey|red green brown"""

# general knowledge: question variants ; answer variants (first is short)
QA = """
How many days are in a week?/How many days does a week have?;There are seven days in a week./A week has seven days.
How many months are in a year?/How many months does a year have?;There are twelve months in a year./A year has twelve months.
How many hours are in a day?/How many hours does a day have?;There are 24 hours in a day./A day has 24 hours.
How many minutes are in an hour?/How many minutes does an hour have?;There are 60 minutes in an hour./An hour has 60 minutes.
How many seconds are in a minute?/How many seconds does a minute have?;There are 60 seconds in a minute./A minute has 60 seconds.
How many days are in a year?/How many days does a year have?;There are 365 days in a year, and 366 in a leap year.
How many weeks are in a year?;There are about 52 weeks in a year.
How many letters are in the alphabet?/How many letters does the English alphabet have?;There are 26 letters in the English alphabet.
What are the vowels?/Which letters are vowels?;The vowels are A, E, I, O and U.
How many seasons are there?/How many seasons are in a year?;There are four seasons: spring, summer, autumn and winter.
What are the four seasons?/Name the seasons./Can you list the seasons?;The four seasons are spring, summer, autumn and winter.
What are the days of the week?/List the days of the week./Name the days of the week.;The days of the week are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday.
What are the months of the year?/List the months./Name all the months.;The months are January, February, March, April, May, June, July, August, September, October, November and December.
What are the primary colours?/Name the primary colours.;The primary colours are red, yellow and blue.
What are the colours of the rainbow?/Name the colours of the rainbow.;The colours of the rainbow are red, orange, yellow, green, blue, indigo and violet.
How many planets are in the solar system?/How many planets are there?;There are eight planets in our solar system.
What are the planets?/Name the planets in the solar system./List the planets.;The planets are Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus and Neptune.
What is the largest planet?/Which planet is the biggest?;Jupiter is the largest planet in our solar system.
What is the smallest planet?/Which planet is the smallest?;Mercury is the smallest planet in our solar system.
Which planet is closest to the sun?/What is the closest planet to the sun?;Mercury is the closest planet to the sun.
Which planet is called the red planet?/What is the red planet?;Mars is called the red planet.
Which planet has large rings?/Which planet is known for its rings?;Saturn is known for its large rings.
What planet do we live on?/Which planet is our home?;We live on the planet Earth.
Is the sun a star or a planet?/What is the sun?;The sun is a star.
What does the Earth go around?/What does the Earth orbit?;The Earth goes around the sun.
What goes around the Earth?/What orbits the Earth?;The moon goes around the Earth.
How long does the Earth take to go around the sun?;The Earth takes about one year to go around the sun.
Why do we have day and night?/What causes day and night?;We have day and night because the Earth turns around once every 24 hours.
Why is the sky blue?/What makes the sky blue?;The sky looks blue because air scatters blue light from the sun more than red light.
What is the largest ocean?/Which ocean is the biggest?;The Pacific Ocean is the largest ocean.
What is the highest mountain?/What is the tallest mountain in the world?/Which mountain is the highest?;Mount Everest is the highest mountain in the world.
What is the longest river?/Which river is the longest in the world?;The Nile is often called the longest river in the world.
What is the largest country?/Which country is the biggest?;Russia is the largest country in the world.
What is the smallest country?/Which country is the smallest in the world?;Vatican City is the smallest country in the world.
How many continents are there?/How many continents does the world have?;There are seven continents.
What are the seven continents?/Name the continents./List the continents.;The continents are Africa, Antarctica, Asia, Europe, North America, Oceania and South America.
What is the largest continent?/Which continent is the biggest?;Asia is the largest continent.
What is the coldest continent?/Which continent is the coldest?;Antarctica is the coldest continent.
What is the largest desert?/Which hot desert is the largest?;The Sahara is the largest hot desert in the world.
At what temperature does water boil?/When does water boil?/What is the boiling point of water?;Water boils at 100 degrees Celsius at sea level.
At what temperature does water freeze?/When does water freeze?/What is the freezing point of water?;Water freezes at 0 degrees Celsius.
What is ice made of?/What is ice?;Ice is frozen water.
What is steam?/What does water become when it boils?;Steam is water that has turned into gas.
What is H2O?/What does H2O mean?/What is the chemical formula for water?;H2O is the chemical formula for water.
What do plants need to grow?/What does a plant need?;Plants need water, light, air and soil to grow.
What do bees make?/What food do bees make?;Bees make honey.
Where does milk come from?/What animal gives us milk?;Most of the milk that we drink comes from cows.
Where do eggs come from?/What animal lays the eggs we eat?;Most of the eggs that we eat come from hens.
Where does wool come from?/Which animal gives us wool?;Wool comes from sheep.
What is bread made from?/What do you need to make bread?;Bread is made from flour, water, yeast and a little salt.
What is cheese made from?/What is cheese made of?;Cheese is made from milk.
What is wine made from?;Wine is made from grapes.
What is paper made from?/What is paper made of?;Paper is made from wood.
What is glass made from?/What is glass made of?;Glass is made mostly from sand.
How many legs does a spider have?/How many legs do spiders have?;A spider has eight legs.
How many legs does an insect have?/How many legs do insects have?;An insect has six legs.
How many legs does a dog have?/How many legs do dogs have?;A dog has four legs.
How many wheels does a car have?;A car has four wheels.
How many wheels does a bicycle have?/How many wheels are on a bike?;A bicycle has two wheels.
How many fingers do people have?/How many fingers are on two hands?;Most people have ten fingers, counting the thumbs.
How many fingers are on one hand?;There are five fingers on one hand, counting the thumb.
How many eyes do people have?;Most people have two eyes.
How many bones are in the human body?/How many bones does an adult have?;An adult human has 206 bones.
How many teeth does an adult have?/How many teeth do people have?;An adult usually has 32 teeth.
What are the five senses?/Name the five senses.;The five senses are sight, hearing, smell, taste and touch.
What does the heart do?/What is the job of the heart?;The heart pumps blood around the body.
What do the lungs do?/What are lungs for?;The lungs take in oxygen from the air when we breathe.
What does the brain do?/What is the brain for?;The brain thinks, remembers and controls the body.
What do we use to see?/Which part of the body do we see with?;We see with our eyes.
What do we use to hear?/Which part of the body do we hear with?;We hear with our ears.
What do we use to smell?;We smell with our nose.
What is the largest animal?/What is the biggest animal in the world?;The blue whale is the largest animal in the world.
What is the fastest land animal?/Which animal runs the fastest?;The cheetah is the fastest land animal.
What is the tallest animal?/Which animal is the tallest?;The giraffe is the tallest animal.
What is the largest land animal?/Which land animal is the biggest?;The African elephant is the largest land animal.
What is the largest bird?/Which bird is the biggest?;The ostrich is the largest bird.
Which birds cannot fly?/Name a bird that cannot fly.;Penguins and ostriches are birds that cannot fly.
Is a whale a fish?/Are whales fish?;No, a whale is a mammal, and it breathes air.
Is a spider an insect?/Are spiders insects?;No, a spider has eight legs, so it is not an insect.
Is a tomato a fruit or a vegetable?/Is a tomato a fruit?;A tomato is a fruit in science, but people cook with it as a vegetable.
Is a bat a bird?/Are bats birds?;No, a bat is a mammal that can fly.
Do fish breathe air?/How do fish breathe?;Fish breathe with gills, which take oxygen from the water.
Can penguins fly?/Do penguins fly?;No, penguins cannot fly, but they swim very well.
Can dogs talk?/Do dogs speak?;No, dogs cannot talk, but they bark and use their bodies to tell us things.
Do cats like milk?;Many cats like milk, but water is better for them.
What do cows eat?;Cows eat grass.
What do caterpillars become?/What does a caterpillar turn into?;A caterpillar turns into a butterfly or a moth.
What does a tadpole become?/What does a tadpole turn into?;A tadpole turns into a frog.
Who wrote Romeo and Juliet?/Who is the author of Romeo and Juliet?;William Shakespeare wrote Romeo and Juliet.
Who wrote Hamlet?/Who is the author of Hamlet?;William Shakespeare wrote Hamlet.
Who wrote Jane Eyre?;Charlotte Bronte wrote Jane Eyre.
Who wrote On the Origin of Species?;Charles Darwin wrote On the Origin of Species.
Who painted the Mona Lisa?/Which artist painted the Mona Lisa?;Leonardo da Vinci painted the Mona Lisa.
Who was the first person on the moon?/Who walked on the moon first?;Neil Armstrong was the first person to walk on the moon, in 1969.
Who was the first president of the United States?;George Washington was the first president of the United States.
Who was Albert Einstein?/Who is Albert Einstein?;Albert Einstein was a scientist who is famous for the theory of relativity.
Who was Isaac Newton?/Who is Isaac Newton?;Isaac Newton was an English scientist who studied gravity, light and motion.
Who was Marie Curie?/Who is Marie Curie?;Marie Curie was a scientist who studied radioactivity and won two Nobel Prizes.
Who was William Shakespeare?/Who is Shakespeare?;William Shakespeare was an English writer of plays and poems.
Who was Mozart?/Who is Mozart?;Mozart was a composer from Austria who wrote more than six hundred pieces of music.
Who was Cleopatra?/Who is Cleopatra?;Cleopatra was a queen of Egypt.
Who was Julius Caesar?;Julius Caesar was a Roman general and leader.
Who was Charles Darwin?/Who is Darwin?;Charles Darwin was an English scientist who explained how living things change over time.
Who invented the telephone?;Alexander Graham Bell is usually named as the inventor of the telephone.
Who invented the light bulb?;Thomas Edison is famous for making the first light bulb that people could use at home.
Where are the pyramids?/In which country are the great pyramids?;The great pyramids are in Egypt.
Where is the Eiffel Tower?/In which city is the Eiffel Tower?;The Eiffel Tower is in Paris, France.
Where is Big Ben?/In which city is Big Ben?;Big Ben is in London, England.
Where is the Statue of Liberty?;The Statue of Liberty is in New York, in the United States.
Where is the Great Wall?/In which country is the Great Wall?;The Great Wall is in China.
Where is the Taj Mahal?/In which country is the Taj Mahal?;The Taj Mahal is in India.
Where is the Opera House with the white roof?/Where is the Sydney Opera House?;The Sydney Opera House is in Sydney, Australia.
Where do kangaroos live?/In which country do kangaroos live?;Kangaroos live in Australia.
Where do penguins live?;Most penguins live in cold places in the south, such as Antarctica.
Where do polar bears live?;Polar bears live in the Arctic, in the far north.
What language do people speak in France?/Which language is spoken in France?;People in France speak French.
What language do people speak in Spain?/Which language is spoken in Spain?;People in Spain speak Spanish.
What language do people speak in Germany?/Which language is spoken in Germany?;People in Germany speak German.
What language do people speak in Italy?;People in Italy speak Italian.
What language do people speak in Japan?;People in Japan speak Japanese.
What language do people speak in Brazil?;People in Brazil speak Portuguese.
What language do people speak in Australia?;Most people in Australia speak English.
What language do people speak in China?;Most people in China speak Mandarin Chinese.
What is the currency of the United States?/What money do people use in the United States?;People in the United States use the dollar.
What is the currency of Japan?/What money do people use in Japan?;People in Japan use the yen.
What is the currency of the United Kingdom?/What money do people use in England?;People in the United Kingdom use the pound.
What money do people use in France?/What is the currency of Germany?;France, Germany and many other countries use the euro.
What is the fastest way to travel, by car or by plane?/Which is faster, a car or a plane?;A plane is faster than a car.
Which is bigger, an elephant or a mouse?/Is an elephant bigger than a mouse?;An elephant is bigger than a mouse.
Which is faster, a snail or a horse?/Is a horse faster than a snail?;A horse is faster than a snail.
Which is heavier, a stone or a feather?/Is a stone heavier than a feather?;A stone is heavier than a feather.
Which is hotter, fire or ice?/Is fire hotter than ice?;Fire is hotter than ice.
Which is bigger, the sun or the moon?/Is the sun bigger than the moon?;The sun is much bigger than the moon.
What falls from the clouds?/What comes from clouds?;Rain and snow fall from the clouds.
What do you use an umbrella for?/Why do people use umbrellas?;People use an umbrella to stay dry in the rain.
What do you wear when it is cold?/What should I wear in winter?;When it is cold, wear a warm coat, a hat, gloves and a scarf.
What do you wear when it is hot?/What should I wear in summer?;When it is hot, wear light clothes and a hat, and drink plenty of water.
What do you use to write?/What can I write with?;You can write with a pen or a pencil.
What do you use to cut paper?/What can I cut paper with?;You can cut paper with scissors.
What do you do with a book?/What are books for?;You read a book to learn something or to enjoy a story.
What do you do when you are thirsty?/I am thirsty. What should I do?;When you are thirsty, drink some water.
What do you do when you are hungry?/I am hungry. What should I do?;When you are hungry, eat something good, such as fruit, soup or a sandwich.
Why do people sleep?/Why do we need sleep?;People sleep so that the body and the brain can rest.
Why do we brush our teeth?/Why should I brush my teeth?;We brush our teeth to keep them clean and healthy.
Why do leaves fall in autumn?/Why do trees lose their leaves?;Many trees drop their leaves in autumn to save water and energy in the cold months.
Why does it rain?/What causes rain?;It rains when tiny drops of water in the clouds join together and become heavy enough to fall.
Why do birds fly south?/Why do some birds fly south in winter?;Some birds fly south in winter to find food and warmer weather.
Why is the sea salty?/What makes the sea salty?;The sea is salty because rivers carry salt from rocks into it.
Why do we need water?/Why is water important?;All living things need water, because the body cannot work without it.
Why do we need to eat?/Why do people eat?;People eat because food gives the body energy and helps it grow.
How do birds fly?/What helps birds fly?;Birds fly by moving their wings, and their light bones and feathers help them.
How do plants make food?/What is photosynthesis?;Plants use sunlight, water and air to make their own food. This is called photosynthesis.
What is the opposite of a question?;The opposite of a question is an answer.
What is the first letter of the alphabet?/What letter comes first in the alphabet?;The first letter of the alphabet is A.
What is the last letter of the alphabet?/What letter comes last in the alphabet?;The last letter of the alphabet is Z.
What is the first month of the year?/Which month comes first?;The first month of the year is January.
What is the last month of the year?/Which month comes last?;The last month of the year is December.
Which month is the shortest?/What is the shortest month?;February is the shortest month.
How many days does February have?/How many days are in February?;February has 28 days, and 29 in a leap year.
What is a leap year?/How long is a leap year?;A leap year is a year with 366 days. It comes about every four years.
When is Christmas?/What day is Christmas?;Christmas is on the 25th of December.
When is New Year's Day?;New Year's Day is on the first of January.
When is Halloween?;Halloween is on the 31st of October.
How many sides does a triangle have?/How many sides are in a triangle?;A triangle has three sides.
How many sides does a square have?/How many sides are in a square?;A square has four equal sides.
How many sides does a hexagon have?;A hexagon has six sides.
How many sides does a pentagon have?;A pentagon has five sides.
How many centimetres are in a metre?;There are 100 centimetres in a metre.
How many metres are in a kilometre?;There are 1000 metres in a kilometre.
How many grams are in a kilogram?;There are 1000 grams in a kilogram.
How many years are in a century?/How long is a century?;There are 100 years in a century.
How many years are in a decade?/How long is a decade?;There are ten years in a decade.
How many eggs are in a dozen?/How many is a dozen?/What is a dozen?;A dozen is twelve.
What is half of a half?;Half of a half is a quarter.
How many players are in a football team?;A football team has eleven players.
How many strings does a guitar have?;A guitar usually has six strings.
How many strings does a violin have?;A violin has four strings.
What is the hardest natural material?/What is the hardest thing in nature?;Diamond is the hardest natural material.
What is the nearest star?/Which star is closest to the Earth?;The sun is the closest star to the Earth.
How fast is light?/What is the speed of light?;Light travels at about 300,000 kilometres per second.
What gas do we need to breathe?/What gas do people breathe in?;We need oxygen to breathe.
What is artificial intelligence?/What does AI mean?/What is AI?;Artificial intelligence, or AI, means computer programs that can do things that seem to need thinking.
What is a GPU?/What does GPU mean?;A GPU is a computer chip that can do many simple sums at the same time. It is good for graphics and for AI.
What is a CPU?/What does CPU mean?;A CPU is the main chip of a computer. It carries out the instructions of programs.
What is WebGPU?/What does WebGPU do?;WebGPU is a standard that lets programs use the graphics chip of a computer, in a browser or in Node.
What is Node?/What is Node.js?;Node is a program that runs JavaScript outside the browser.
What is JavaScript?;JavaScript is a programming language that runs in web browsers and in Node.
What is TypeScript?;TypeScript is JavaScript with types, which help to find mistakes early.
What is open source?/What does open source mean?;Open source means that everyone may read, use and change the code of a program.
What is JSON?/What does JSON look like?;JSON is a simple way to write data as text, such as {"name": "Anna", "age": 7}.
What is a chatbot?/What is a chat model?;A chatbot is a computer program that answers people in words.
"""

JOKES = """Why did the chicken cross the road? To get to the other side.
What do you call a bear with no teeth? A gummy bear.
Why was six afraid of seven? Because seven ate nine.
What has hands but cannot clap? A clock.
Why did the book go to the doctor? It had hurt its spine.
What do you call cheese that is not yours? Nacho cheese.
Why did the student eat his homework? Because the teacher said it was a piece of cake.
What kind of tree fits in your hand? A palm tree.
Why did the bicycle fall over? It was two tired.
What do you get when you cross a snowman and a dog? Frostbite.
Why do bees have sticky hair? Because they use honeycombs.
What did one wall say to the other wall? I will meet you at the corner.
Why did the computer go to bed? It needed to shut down.
What do you call a sleeping bull? A bulldozer.
Why can a bicycle not stand alone? Because it is two tired.
How does the moon cut his hair? Eclipse it.
What did the ocean say to the beach? Nothing, it just waved.
Why did the tomato turn red? Because it saw the salad dressing.
What is orange and sounds like a parrot? A carrot.
Why do fish live in salt water? Because pepper makes them sneeze."""

RIDDLES = """What has keys but cannot open locks?|A piano.
What gets wetter the more it dries?|A towel.
What has a neck but no head?|A bottle.
What goes up but never comes down?|Your age.
What has one eye but cannot see?|A needle.
What can you catch but not throw?|A cold.
What has teeth but cannot bite?|A comb.
What has legs but cannot walk?|A table.
What is full of holes but still holds water?|A sponge.
What can travel around the world and stay in a corner?|A stamp.
What has a face and two hands but no arms or legs?|A clock.
What belongs to you, but other people use it more than you do?|Your name."""

FUNFACTS = """Honey can stay good to eat for a very long time.
A day on Venus is longer than a year on Venus.
An octopus has three hearts.
Bananas float in water.
The Eiffel Tower is a little taller in summer, because metal grows in the heat.
A group of crows is called a murder.
Sea otters hold hands when they sleep.
A bolt of lightning is hotter than the surface of the sun.
Butterflies taste with their feet.
Some turtles can breathe through their tails.
The heart of a blue whale is about as big as a small car.
Water covers most of the Earth.
Sharks do not have bones.
A snail can sleep for a very long time when it is too dry.
The moon moves a little farther away from the Earth each year.
Cows have best friends.
Sound travels faster in water than in air.
Hot water can sometimes freeze faster than cold water.
A cloud can weigh as much as a hundred elephants.
Trees can live for thousands of years."""

# how-to: name ; steps sentence
HOWTO = """make a cup of tea;Boil some water, put a tea bag in a cup and pour in the water. Wait three minutes, then take out the tea bag.
boil an egg;Put the egg in boiling water. Wait about eight minutes, then cool it in cold water.
make a sandwich;Take two pieces of bread, put butter and a filling on one piece, and put the other piece on top.
wash my hands;Wet your hands, rub them with soap for twenty seconds, rinse them and dry them well.
brush my teeth;Put a little toothpaste on a brush and clean every side of your teeth for two minutes.
plant a seed;Put the seed in soft soil, cover it, give it a little water and put it in a sunny place.
make toast;Put a piece of bread in the toaster and wait until it is brown.
make pancakes;Mix flour, eggs and milk. Pour a little into a hot pan and cook it on both sides.
cook rice;Put one cup of rice and two cups of water in a pot. Let it boil, then cook it slowly for about fifteen minutes.
cook pasta;Boil a large pot of water with a little salt. Cook the pasta for about ten minutes, then pour off the water.
make a salad;Wash and cut some vegetables, put them in a bowl, and add a little oil and lemon juice.
make coffee;Put ground coffee in a filter and pour hot water over it slowly.
fall asleep;Make the room dark and quiet, put your phone away and breathe slowly.
learn a new language;Practise a little every day, listen a lot, speak without fear and learn from your mistakes.
save money;Write down what you spend, buy only what you need and put a little money aside each month.
make new friends;Be kind, smile, ask questions and join a group that does something you enjoy.
study for a test;Start early, read your notes, test yourself and take short breaks.
clean my room;Put your things away, dust the shelves, and then sweep or vacuum the floor.
draw a cat;Draw a circle for the head, add two triangles for ears, then draw eyes, a nose and whiskers.
stay healthy;Eat well, move every day, drink water and get enough sleep.
feel better when I am sad;Talk to someone you trust, go for a walk, rest, and do something that you enjoy.
calm down;Breathe in slowly, count to four, breathe out slowly, and do it again a few times.
write a letter;Start with Dear and the name, say what you want to say, and end with your own name.
wrap a gift;Put the gift on paper, fold the paper around it, and close it with tape.
ride a bicycle;Sit on the seat, hold the handles, look ahead and push the pedals. Wear a helmet.
swim;Start in shallow water with a teacher, learn to float, and then learn to kick and move your arms.
water a plant;Pour a little water on the soil when it feels dry, but do not give it too much.
tie my shoes;Cross the laces and pull, make two loops, cross the loops and pull them tight.
cross the road safely;Stop, look both ways, listen, and cross only when the road is clear.
read more books;Choose books that you enjoy, and read for ten minutes every day."""

POEMS = """{A}, soft and bright,
you fill my heart with light.
{B} may come and go,
but you are still the best I know.
---
The {a} is near, the sky is clear,
a happy time of the year.
We walk along, we sing a song,
and nothing in the world is wrong.
---
I saw {xa} in the early day,
it danced a while and went away.
I hope that it will come once more
and rest a little by my door.
---
O little {a}, where do you go?
Over the hills and through the snow.
O little {a}, when will you rest?
When I am home in my warm nest.
---
{XA} came to visit me,
under the old green apple tree.
We had some cake, we had some tea,
and we were as glad as we could be."""

FALLBACK_TOPICS = """quantum field theory|the tax law of Norway|medieval poetry|nuclear fusion reactors|the stock market|the rules of curling|the history of Byzantium|advanced calculus|organic chemistry|the novels of Tolstoy|machine learning papers|constitutional law|the Peloponnesian War|black hole thermodynamics|the philosophy of Kant|genetic engineering|car repair|wine tasting|the political system of Belgium|Japanese grammar|the Kardashians|cryptocurrency mining|protein folding|tort law|the lyrics of that song|the plot of the latest film|the best phone to buy|the football scores|pension plans|Rust lifetimes|C++ templates|Kubernetes|differential geometry|the Krebs cycle|baroque architecture|string theory"""

NAMES = """Anna Ben Clara David Emma Frank Grace Henry Iris Jack Kate Liam Mia Noah Olivia Paul Rosa Sam Tina Tom Vera Will Zoe Adam Bella Carl Daisy Eric Fiona George Hannah Ian Julia Kevin Laura Mark Nina Oscar Penny Quinn Ruth Simon Tara Uma Victor Wendy Max Lily Leo Lucy Peter Sara John Mary James Alice Robert Linda Michael Susan Daniel Karen Ahmed Fatima Omar Aisha Wei Li Ming Yuki Kenji Priya Raj Ravi Anita Carlos Maria Jose Sofia Diego Elena Ivan Olga Pierre Marie Luca Giulia Lars Ingrid Bruce Sheila Maya Ethan Chloe Ryan Ella Jacob Amy Matt Jenny Steve Nora Hugo Felix Alex Chris Jordan Taylor Morgan Casey Robin Kim Ada Alan Grace Linus Edith Arthur Helen Martin Rachel Philip Diana Stella Hassan Leila Tariq Chen Mei Kofi Ama Kwame Zara Dylan Megan Owen Rhys Sean Aoife Niamh Patrick Bridget Hans Greta Otto Freya Sven Astrid Nikolai Katya Pedro Lucia Marco Paolo""".split()
CITIES = """London Paris Rome Berlin Madrid Sydney Melbourne Perth Brisbane Tokyo Cairo Dublin Boston Chicago Toronto Vienna Oslo Lisbon Athens Prague Delhi Mumbai Lima Nairobi Seattle Austin Denver Glasgow Leeds Bristol Adelaide Hobart Auckland Dallas Miami Munich Milan Lyon Porto Geneva Warsaw Helsinki""".split()
HOBBIES = """reading|cooking|painting|swimming|hiking|dancing|singing|gardening|fishing|cycling|running|chess|football|tennis|drawing|photography|knitting|playing the guitar|playing the piano|baking|camping|sewing|writing|watching films|yoga|skating""".split(
    '|'
)
JOBS = """teacher doctor nurse cook farmer baker driver pilot sailor builder painter singer writer scientist engineer lawyer dentist student gardener waiter carpenter librarian musician""".split()
FOODS = """pizza|pasta|soup|rice|bread|cheese|salad|cake|chocolate|apples|noodles|curry|pancakes|ice cream|fish|eggs|potatoes|sandwiches|bananas|strawberries""".split(
    '|'
)
COLOUR_LIST = "red blue green yellow orange purple pink brown black white grey".split()
OBJECTS = """book|cup|hat|ball|key|bag|coat|lamp|clock|letter|box|pen|phone|ring|umbrella|basket|bottle|camera|map|kite|scarf|shoe|spoon|chair|guitar|blanket|ticket|cake|apple|sandwich""".split(
    '|'
)
PLACES = """park|garden|kitchen|school|library|market|station|beach|forest|museum|hospital|shop|office|zoo|farm|castle|restaurant|theatre|bakery|airport|church|hotel|river|village""".split(
    '|'
)
WORDS_MADEUP = """florbit|glimmock|snorvel|trandle|bloopish|wexxer|quimbat|zindle|prangle|morvish|tibblet|drosk|yampter|frondle|skeev|plinter|grubbish|vostle|kerfink|narple|jubbit|ozzlet|crindle|wumper|thrasket|bimbly|fleegle|gorptin|humdrel|pizzock|ruvvin|sprockle|tworp|ungle|zaffin""".split(
    '|'
)

MORE_TOPICS = """quantum computing|blockchain|the theory of relativity|the French Revolution|the Roman Empire|World War Two|the Cold War|inflation|interest rates|the human genome|vaccines|climate change|solar panels|nuclear power|electric cars|rocket engines|the big bang|dark matter|black holes|evolution|the ice age|photosynthesis in detail|the nervous system|diabetes|vitamins|psychology|Freud|Buddhism|Greek philosophy|Plato|Nietzsche|modern art|jazz history|the Beatles|opera|film noir|Star Wars|Harry Potter|the Bible|Greek mythology|Norse gods|the Vikings|samurai|ancient China|the Silk Road|the Aztecs|the moon landing|satellites|GPS|5G|compilers|operating systems|Linux|Docker|SQL databases|React|neural networks|transformers|attention in neural networks|reinforcement learning|linear algebra|matrices|calculus|integrals|statistics|probability|trigonometry|prime number theory|cooking French food|making sushi|growing orchids|training a horse|sailing knots|mountain climbing|marathon training|weight lifting|investing|mortgages|insurance|accounting|marketing|job interviews|company law|the European Union|the United Nations|human rights|democracy|socialism|feminism|urban planning|bridges and statics|welding|carpentry joints|sewing machines|watchmaking|coffee roasting|brewing beer|cheese making|bee keeping|bird migration|coral reefs|volcano types|earthquakes|weather models|ocean currents|the water cycle in detail|acoustics|optics|thermodynamics|electromagnetism|semiconductors|chess openings|poker odds|video game design|animation|typography|poetry of Keats|Shakespeare sonnets|English grammar rules|Latin|Esperanto|sign language"""
LASTNAMES = "Smith Jones Brown Taylor Wilson Davies Evans Thomas Johnson Roberts Walker Wright Robinson Thompson White Hughes Edwards Green Hall Wood Harris Lewis Martin Jackson Clarke Clark Turner Hill Scott Cooper Morris Ward Moore King Watson Baker Harrison Morgan Patel Young Allen Mitchell Anderson Phillips Lee Bell Parker Davis Bennett Miller Cook Shaw Khan Singh Garcia Kim Tanaka Novak Silva Costa Rossi Weber Schmidt Larsen Berg Okafor Mensah Nguyen Tran Wang Zhang Ito Cohen Haddad Aydin Ivanov Petrov".split()

QA = (
    QA.rstrip()
    + "\n"
    + """Why is exercise good?/What are the benefits of exercise?/Why should I exercise?/List some benefits of exercise.;Exercise keeps the heart strong, helps you to sleep and lifts your mood.
Why is reading good?/What are the benefits of reading?/Why should I read?;Reading teaches you new words, opens new ideas and helps you to relax.
Why is sleep important?/What are the benefits of sleep?/How much sleep do I need?;Most adults need seven to nine hours of sleep. It helps the body to heal and the mind to learn.
Why is fruit healthy?/Why should I eat fruit?/What are the benefits of fruit?;Fruit has vitamins, fibre and water, which keep the body healthy.
Why is music good for us?/What are the benefits of music?/Why do people listen to music?;Music can calm us, cheer us up and bring people together.
Why are friends important?/Why do we need friends?/What makes a good friend?;A good friend listens, tells the truth and helps you in hard times.
What makes a good teacher?;A good teacher is patient, explains things clearly and cares about the students.
How can I sleep better?/Give me a tip for better sleep./What helps with sleep?;Go to bed at the same time each day, keep the room dark and put your phone away.
How can I be more productive?/How do I get more done?/Give me a tip for work.;Do one thing at a time, start with the most important task and take short breaks.
How can I learn faster?/What is a good way to learn?/How do I remember things?;Learn a little each day, test yourself and explain what you learned to someone else.
How can I save water?/How do I use less water?;Take shorter showers, turn off the tap while you brush your teeth and fix leaks.
How can I save energy?/How do I use less electricity?;Turn off lights and machines that you do not use, and heat only the rooms that you need.
How can I eat healthy food?/What is healthy food?/What is a healthy meal?;Eat many vegetables and fruits, whole grains and some beans, fish or eggs.
What is a good breakfast?/What should I eat for breakfast?/Give me a breakfast idea.;Oats with fruit, eggs on toast or yoghurt with nuts make a good breakfast.
What is a good gift for a friend?/What should I give as a birthday present?/Give me a gift idea.;A good book, a plant or something that you made yourself is a nice gift.
What should I name my cat?/Give me a name for a cat./What is a good name for a cat?;You could call your cat Misty, Leo, Luna or Oscar.
What should I name my dog?/Give me a name for a dog./What is a good name for a dog?;You could call your dog Max, Bella, Rocky or Daisy.
What can I do on a rainy day?/What can I do at home?/Give me an idea for a rainy day.;You could read, bake a cake, play a board game or draw.
What can I do at the weekend?/Give me an idea for the weekend./What should I do on Sunday?;You could visit a friend, walk in a park, cook something new or read a good book.
What is a good hobby?/Give me an idea for a hobby./Which hobby should I try?;You could try drawing, gardening, running, cooking or playing an instrument.
Where should I go on holiday?/Give me an idea for a holiday./What is a good place for a trip?;You could go to the sea, to the mountains or to a city with good museums.
What is a good book?/Which book should I read?/Can you recommend a book?;You could read Jane Eyre by Charlotte Bronte. It is a classic story.
What is the capital?/What is the capital city?;Of which country? Please tell me the name of the country.
What is the answer?/What is it?;I am not sure what you mean. Can you tell me more?
How are babies animals called?/What do you call a baby animal?;It depends on the animal. A baby dog is a puppy, and a baby cat is a kitten.
What is bigger, the Earth or the moon?/Is the Earth bigger than the moon?;The Earth is bigger than the moon.
What is bigger, a city or a village?/Is a city bigger than a village?;A city is bigger than a village.
What is faster, a bicycle or a car?/Is a car faster than a bicycle?;A car is faster than a bicycle.
Is the Earth flat?/Is the Earth round?/What shape is the Earth?;The Earth is round, almost like a ball.
Is the sun hot?/How hot is the sun?;The surface of the sun is about 5,500 degrees Celsius.
Is fire cold?/Is fire hot?;Fire is hot.
Is ice hot?/Is ice cold?;Ice is cold.
Is water wet?;Yes, water is wet.
Can fish swim?/Can fish fly?;Fish can swim. A few kinds can also glide through the air.
Can birds fly?/Do all birds fly?;Most birds can fly, but some, such as penguins, cannot.
Can cats swim?/Do cats like water?;Most cats can swim, but they do not like to get wet.
Can people fly?/Can humans fly?;People cannot fly by themselves, but they can fly in a plane.
Can people breathe under water?/Can humans breathe under water?;No, people need air to breathe.
Do plants need light?/Do plants need the sun?;Yes, plants need light to make their food.
Do trees sleep?/Are trees alive?;Trees are alive. Some of them rest in the winter.
Does the sun go around the Earth?/Does the Earth go around the sun?;The Earth goes around the sun.
In which direction does the sun rise?/Where does the sun rise?;The sun rises in the east.
In which direction does the sun set?/Where does the sun set?;The sun sets in the west.
What are clouds made of?/What is a cloud made of?;Clouds are made of tiny drops of water or ice.
What is snow made of?;Snow is made of tiny crystals of ice.
What is sand made of?;Sand is made of very small pieces of rock.
What is butter made from?;Butter is made from cream.
What is chocolate made from?;Chocolate is made from cocoa beans.
What is coffee made from?;Coffee is made from roasted coffee beans.
What are chips made from?/What are fries made from?;Chips are made from potatoes.
What is a pizza made of?/How do you make pizza?;Pizza is made of flat bread with tomato, cheese and other toppings, baked in an oven.
Which part of a plant is under the ground?;The roots of a plant are under the ground.
What do you call a doctor for animals?/Who helps sick animals?;A doctor for animals is called a vet.
What do you call a doctor for teeth?/Who takes care of teeth?;A doctor for teeth is called a dentist.
Who puts out fires?/Who do I call when there is a fire?;Firefighters put out fires.
Who bakes bread?/Who makes bread?;A baker makes bread.
Who flies a plane?;A pilot flies a plane.
Who grows food?/Who grows vegetables?;Farmers grow food.
Who teaches children?/Who works in a school?;Teachers work in a school and teach children.
Who works in a hospital?;Doctors and nurses work in a hospital.
Where do you buy bread?/Where can I buy bread?;You can buy bread in a bakery.
Where do you borrow books?/Where can I borrow a book?;You can borrow books in a library.
Where do planes land?;Planes land at an airport.
Where do fish live?;Fish live in water: in rivers, lakes and the sea.
Where do bees live?;Bees live in a hive.
Where do birds live?;Many birds live in nests in trees.
What do you wear on your feet?;You wear socks and shoes on your feet.
What do you wear on your head?;You wear a hat on your head.
What do you wear on your hands?;You wear gloves on your hands.
What do you do with a pen?/What is a pen for?;You write with a pen.
What do you do with a knife?;You cut things with a knife.
What do you do with a spoon?;You eat soup or stir things with a spoon.
What do you do in a kitchen?;You cook food in a kitchen.
What do you do in a bedroom?;You sleep in a bedroom.
What is the number after nine?;The number after nine is ten.
How many legs do people have?/How many legs does a person have?;Most people have two legs.
How many legs does a bird have?;A bird has two legs.
How many legs does a fish have?;A fish has no legs.
How many wings does a bird have?;A bird has two wings.
How many arms does an octopus have?;An octopus has eight arms.
How many corners does a square have?;A square has four corners.
How many minutes are in half an hour?;There are 30 minutes in half an hour.
How many days are in two weeks?;There are 14 days in two weeks.
How many days are in a weekend?;There are two days in a weekend: Saturday and Sunday.
How many months have 31 days?;Seven months have 31 days.
What is the largest city in Australia?;Sydney is the largest city in Australia.
What is the largest city in the United States?;New York is the largest city in the United States.
Which language has the most native speakers?;Mandarin Chinese has the most native speakers.
Which country has the most people?;India has the most people in the world.
What is the chemical symbol for gold?/What is the symbol for gold?;The chemical symbol for gold is Au.
What is the chemical symbol for oxygen?;The chemical symbol for oxygen is O.
What is the chemical symbol for iron?;The chemical symbol for iron is Fe.
What is the square root of 9?;The square root of 9 is 3.
What is the square root of 16?;The square root of 16 is 4.
What is the square root of 144?;The square root of 144 is 12.
What is pi?/What is the value of pi?;Pi is about 3.14. It is the distance around a circle divided by the distance across it.
What is a prime number?;A prime number can be divided only by one and by itself, such as 2, 3, 5 and 7.
What is a synonym?;A synonym is a word that means the same as another word.
What is a port?/What is a port number?;A port is a number that tells a computer which program a message is for.
What is localhost?;Localhost is the name of your own machine on the network.
What is an endpoint?;An endpoint is an address where a program takes requests.
What is a POST request?;A POST request sends data to a server.
What is a model?/What is a neural network?;A neural network is a program with many numbers that it has learned from examples.
What is text to speech?/What does TTS mean?;Text to speech turns written words into spoken sound.
What is speech to text?/What does transcription mean?/What is transcription?;Transcription, or speech to text, turns spoken words into written text.
What is a system prompt?;A system prompt is a message that tells a chat model how to behave.
What is machine learning?;Machine learning means that a program learns from examples instead of fixed rules.
"""
)
HAIKU = """the sea|Waves come and then go,/the wide blue sea breathes slowly/under the white moon.
the moon|Quiet silver light,/the moon looks in my window/and says a soft word.
spring|Green leaves on the tree,/a small bird sings in the sun,/spring has come at last.
winter|Snow falls on the roof,/the street is white and silent,/I drink my warm tea.
autumn|Red leaves on the road,/a cold wind comes from the hills,/the summer is gone.
summer|Long and golden days,/bare feet in the warm soft grass,/bees among the flowers.
the rain|Rain on the window,/small drops run down the cold glass,/the garden is glad.
a cat|The cat on the wall/looks at the bird in the tree,/then goes back to sleep.
a computer|A small light comes on,/the machine begins to think,/words fill up the screen.
a friend|You call out my name,/and the long grey day is bright,/my good old friend."""
